# A container's main process: makes it ready as root, before anybody runs anything in it, and
# keeps it from then on. Where commands are root's too, it leaves a shell for them behind (see
# docker_serve.sh), which is sooner there than an exec of the engine.
# Arguments: the user of the commands, the workspace, the shell, "offline" where there is
# loopback alone or "no-names" where nobody that the user knows answers for names, how many
# bytes of certificates there are to trust, and the words that make that shell, if there is to
# be one. Standard input: a line with a token, and the certificates. Both streams end with the
# token and what is missing; then they are the shell's.
# A name that the image's environment has would be changed there for the commands too.
unset __user __workspace __shell __names __certificates __token __program __own
__user=$1 __workspace=$2 __shell=$3 __names=$4 __certificates=$5
shift 5
read -r __token || exit 0
exec 5<&0
told() {
    printf '%s %s\n' "$__token" "$1" >&2
    printf '%s %s\n' "$__token" "$1"
    trap '' HUP INT TERM # a command that ends all of its like ends no session
    exec sleep infinity </dev/null >/dev/null 2>&1 5<&-
}

command -v setsid >/dev/null || told "no setsid command (util-linux or BusyBox)"
command -v "$__shell" >/dev/null || told "no $__shell"
for __program in cat chmod chown head mkdir mv readlink rm sleep stat tr wc; do
    command -v "$__program" >/dev/null || told "no $__program"
done
[ -z "$__user" ] || chown "$__user" "$__workspace" 2>/dev/null || told "no user $__user to own $__workspace"
case $__names in
offline) # An engine that leaves the network alone leaves these empty.
    printf '127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n' >/etc/hosts
    # Nobody answers there, and so it is said at once that a name is unknown.
    echo "nameserver 127.0.0.1" >/etc/resolv.conf ;;
no-names) # The engine takes public servers where the machine has none that a container reaches.
    case $(cat /etc/resolv.conf 2>/dev/null) in
    *"nameserver 8.8.8.8"*) echo "nameserver 127.0.0.1" >/etc/resolv.conf ;;
    esac ;;
esac
if [ "$__certificates" -gt 0 ]; then
    head -c "$__certificates" >/etc/sandbox-ca.pem || told "no place for certificates"
    for __own in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
        [ -s "$__own" ] && { echo; cat "$__own"; } >>/etc/sandbox-ca.pem && break
    done
    chmod 644 /etc/sandbox-ca.pem
fi
# Not in the background, where whatever a shell starts ignores signals: it is the shell between
# that goes.
[ $# = 0 ] || (/bin/sh -c 'kill -s KILL "$PPID"; exec "$@"' sh "$@" <&5 5<&-; :)
told ""
