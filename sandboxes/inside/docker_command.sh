# Run one command, and say when it has ended: what it started may hold its streams on.
# Arguments: a name that nothing else here has, then the command as a list of words.
# Standard input: a line with a token, when the client listens. Standard output and error:
# the command's; and the token with a number, first this shell's process id and in the end
# the exit code. The token is nowhere else: a list of all processes would show it.
#
# The command's streams are pipes of its own, which two cats empty until nobody writes to
# them: so the engine never waits for what a command left in the background.
# A name that the image's environment has would be changed there for the command too.
unset TINI_SUBREAPER __token __code
shift
read -r __token || exit 0
# What a shell itself says of a command that was killed is no output.
exec 3>&2 2>/dev/null </dev/null
printf '%s %s\n' "$__token" "$$"
{
    {
        exec 5>&2 2>/dev/null
        (exec setsid "$@" 2>&5 5>&-)
        __code=$?
        printf '%s %s\n' "$__token" "$__code"
        printf '%s %s\n' "$__token" "$__code" >&5
    } 2>&1 >&4 3>&- 4>&- | cat >&3 4>&-
} 4>&1 | cat
