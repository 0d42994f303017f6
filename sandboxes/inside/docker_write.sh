# Write a file so that no reader sees a part of it. Arguments: the path and the
# number of bytes. Standard input: a line with a token, and then the bytes.
# Both streams end with the token and, where it was not written, the reason.
path=$1 length=$2 LC_ALL=C
export LC_ALL
read -r token || exit 0
told() { printf '%s %s\n' "$token" "$1" >&2; printf '%s %s\n' "$token" "$1"; exit 0; }
failed() { [ -z "$part" ] || rm -f "$part"; told "${said##*: }"; }

part=
case $path in */) told "Is a directory" ;; esac
[ -d "$path" ] && told "Is a directory"
[ -e "$path" ] && [ ! -f "$path" ] && told "is no regular file, and is not written"
if [ -L "$path" ]; then
    # What a link leads to is written; the x keeps line feeds at the end of its name.
    said=$(readlink -f "$path" 2>&1 && echo x) || told "No such file or directory"
    path=${said%?x}
fi
said=$(mkdir -p "${path%/*}/" 2>&1) || failed
part=${path%/*}/.$token.part
said=$({ head -c "$length" >"$part"; } 2>&1) || failed
[ "$(wc -c <"$part")" -eq "$length" ] || { said="was not written whole"; failed; }
if [ -e "$path" ]; then
    chown "$(stat -c %u:%g "$path")" "$part" 2>/dev/null
    chmod "$(stat -c %a "$path")" "$part" 2>/dev/null
fi
said=$(mv -f "$part" "$path" 2>&1) || failed
told ""
