# Run one program after the other: a shell that is there already is sooner done than a new exec.
# Arguments: the programs for commands, for reading and for writing files. Standard input, for
# each: a line with a token, which both streams repeat when it has its turn; a line with another
# token; a line of words for a shell, which have the programs as $command, $read and $write; and
# then what the program itself reads. Once it has ended both streams have the second token again:
# it may not have come to say that itself.
command=$1 read=$2 write=$3 nl='
'
told() { echo "$1" >&3; echo "$1"; }
# What a shell itself says of a program that was killed is no output.
exec 3>&2 2>/dev/null
while IFS= read -r token; do
    told "$token"
    { IFS= read -r token && IFS= read -r line; } || exit 0
    (eval "$line") 2>&3 3>&-
    told "$token"
done
