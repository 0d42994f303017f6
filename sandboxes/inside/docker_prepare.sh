# A container's main process: makes it ready as root, before anybody runs anything in it, and
# keeps it from then on.
# Arguments: the user of the commands, the workspace, the shell, and "no-names"
# where nobody that the user knows answers for names. Standard input: a line with a token. Both streams end with the token and what is missing.
user=$1 workspace=$2 shell=$3 names=$4
read -r token || exit 0
told() {
    printf '%s %s\n' "$token" "$1" >&2
    printf '%s %s\n' "$token" "$1"
    exec sleep infinity </dev/null >/dev/null 2>&1
}

command -v setsid >/dev/null || told "no setsid command (util-linux or BusyBox)"
command -v "$shell" >/dev/null || told "no $shell"
for program in cat chmod chown head mkdir mv readlink rm sleep stat tr wc; do
    command -v "$program" >/dev/null || told "no $program"
done
[ -z "$user" ] || chown "$user" "$workspace" 2>/dev/null || told "no user $user to own $workspace"
# The engine takes public servers where the machine has none that a container reaches.
if [ -n "$names" ]; then
    case $(cat /etc/resolv.conf 2>/dev/null) in
    *"nameserver 8.8.8.8"*) echo "nameserver 127.0.0.1" >/etc/resolv.conf ;;
    esac
fi
if [ -s /etc/sandbox-ca.pem ]; then
    for own in /etc/ssl/certs/ca-certificates.crt /etc/pki/tls/certs/ca-bundle.crt /etc/ssl/cert.pem; do
        [ -s "$own" ] && { echo; cat "$own"; } >>/etc/sandbox-ca.pem && break
    done
    chmod 644 /etc/sandbox-ca.pem
fi
told ""
