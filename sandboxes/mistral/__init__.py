"""The sandbox on Mistral Cloud, which speaks the protocol of its provider, Koyeb.

`sandbox` is the configuration, `options` what it takes and where a default comes from;
`definition` what is asked of the cloud; `transport`, `control_plane` and `executor` the
calls; `provisioning` the life of one sandbox in the cloud, `proof` that its policy is in
force, `programs` what runs inside, and `running` the commands and files of a session.
"""
