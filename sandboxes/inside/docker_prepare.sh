# A container's main process: makes it ready as root, before anybody runs anything in it, and
# keeps it from then on. Where commands are root's too, it leaves a shell for them behind (see
# docker_serve.sh), which is sooner there than an exec of the engine.
# Arguments: the user of the commands, the workspace, the shell, "offline" where there is
# loopback alone or "no-names" where nobody that the user knows answers for names, how many
# bytes of certificates there are to trust, and the words that make that shell, if there is to
# be one. Standard input: a line with a token, and the certificates. Both streams end with the
# token and what is missing; then they are the shell's.
user=$1 workspace=$2 shell=$3 names=$4 certificates=$5
shift 5
read -r token || exit 0
exec 5<&0
told() {
    printf '%s %s\n' "$token" "$1" >&2
    printf '%s %s\n' "$token" "$1"
    exec sleep infinity </dev/null >/dev/null 2>&1 5<&-
}

command -v setsid >/dev/null || told "no setsid command (util-linux or BusyBox)"
command -v "$shell" >/dev/null || told "no $shell"
for program in cat chmod chown head mkdir mv readlink rm sleep stat tr wc; do
    command -v "$program" >/dev/null || told "no $program"
done
[ -z "$user" ] || chown "$user" "$workspace" 2>/dev/null || told "no user $user to own $workspace"
case $names in
offline) # An engine that leaves the network alone leaves these empty.
    printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >/etc/hosts
    # Nobody answers there, and so it is said at once that a name is unknown.
    echo "nameserver 127.0.0.1" >/etc/resolv.conf ;;
no-names) # The engine takes public servers where the machine has none that a container reaches.
    case $(cat /etc/resolv.conf 2>/dev/null) in
    *"nameserver 8.8.8.8"*) echo "nameserver 127.0.0.1" >/etc/resolv.conf ;;
    esac ;;
esac
if [ "$certificates" -gt 0 ]; then
    head -c "$certificates" >/etc/sandbox-ca.pem || told "no place for certificates"
    for own in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
        [ -s "$own" ] && { echo; cat "$own"; } >>/etc/sandbox-ca.pem && break
    done
    chmod 644 /etc/sandbox-ca.pem
fi
# Not in the background, where whatever a shell starts ignores signals: it is the shell between
# that goes.
[ $# = 0 ] || (/bin/sh -c 'kill -s KILL "$PPID"; exec "$@"' sh "$@" <&5 5<&-; :)
told ""
