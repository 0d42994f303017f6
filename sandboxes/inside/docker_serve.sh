# Run one program after the other: a shell that is there already is sooner done than a new exec.
# Arguments: the programs for commands, for reading and for writing files. Standard input, for
# each: a line with a token, which both streams repeat when it has its turn; a line with another
# token; a line of words for a shell, which have the programs as $__command and the like; and
# then what the program itself reads. Once it has ended both streams have the second token again:
# it may not have come to say that itself.
# A name that the image's environment has would be changed there for the commands too.
unset __command __read __write __nl __token __line
__command=$1 __read=$2 __write=$3 __nl='
'
told() { echo "$1" >&3; echo "$1"; }
# What a shell itself says of a program that was killed is no output.
exec 3>&2 2>/dev/null
while IFS= read -r __token; do
    told "$__token"
    { IFS= read -r __token && IFS= read -r __line; } || exit 0
    (eval "$__line") 2>&3 3>&-
    told "$__token"
done
