# Print a file. Arguments: the path. Standard input: a line with a token, when the
# client listens. Both streams end with the token and, where it was not
# printed, the reason.
path=$1 LC_ALL=C
export LC_ALL
read -r token || exit 0
told() { printf '%s %s\n' "$token" "$1" >&2; printf '%s %s\n' "$token" "$1"; exit 0; }

[ -d "$path" ] && told "Is a directory"
[ -e "$path" ] && [ ! -f "$path" ] && told "is no regular file, and is not read"
exec 3>&1
said=$(cat "$path" 2>&1 >&3 3>&-) && told ""
told "${said##*: }"
