"""The laboratory: a sealed place to run a sandbox in, and witnesses of what left it.

Outside: `launch` starts `launcher`, which makes the namespaces (`network`, `files`, `seal`,
`environment`; or `loopback`, without any), the witnesses (`servers`) and runs one command.
Inside: `client` makes `sites` and tells what was seen there (`journal`); `census` tells what
was left behind.
"""
