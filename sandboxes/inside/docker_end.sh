# End a command with all that it started: SIGTERM, a grace, SIGKILL.
# Arguments: the process id of the command's shell (see docker_command.sh), its name, and
# the grace in hundredths of a second. Standard input: a line with a token. Both streams end with the token
# and the processes that could not be ended.
#
# The shell's parent is the engine's init, which adopts every orphan of the command: so all
# that came of it is below that, whatever session, group or environment it has. A command may
# have killed them; then what still has its name in its environment is all that is found.
shell=$1 name=$2 grace=$3 victims=
read -r token || exit 0

# Sets state and parent of a process.
look() {
    { read -r line <"/proc/$1/stat"; } 2>/dev/null || return 1
    line=${line##*)}
    # shellcheck disable=SC2086 # fields
    set -- $line
    state=$1 parent=$2
}

# Sets hundredths of seconds since the machine started.
clock() {
    read -r now rest </proc/uptime
    now=${now%.*}${now#*.}
}

# Sets victims: what has the command's name in its environment.
named() {
    victims=
    for entry in $(grep -ls "SANDBOX_COMMAND=$name" /proc/[0-9]*/environ); do
        entry=${entry#/proc/}
        entry=${entry%/environ}
        look "$entry" && [ "$state" != Z ] && victims="$victims $entry"
    done
}

# Sets victims: what lives below the init, but for the shell itself and its helpers.
scan() {
    [ -n "$root" ] || { named; return; }
    all=
    for entry in /proc/[0-9]*; do
        entry=${entry#/proc/}
        look "$entry" && [ "$state" != Z ] && all="$all $entry:$parent"
    done
    spared=" $shell " level=" $shell "
    for depth in 1 2; do
        next=" "
        for entry in $all; do
            case $level in *" ${entry#*:} "*) next="$next${entry%:*} " ;; esac
        done
        spared="$spared$next" level=$next
    done
    known=" $root $spared" victims= found=yes
    while [ -n "$found" ]; do
        found=
        for entry in $all; do
            case $known in *" ${entry%:*} "*) continue ;; esac
            case $known in
            *" ${entry#*:} "*) known="$known${entry%:*} " victims="$victims ${entry%:*}" found=yes ;;
            esac
        done
    done
}

# shellcheck disable=SC2086 # a list
tell() { kill -s "$1" $victims 2>/dev/null; }
told_all() { echo "$token$victims"; echo "$token$victims" >&2; exit 0; }

root=
# An orphan's parent is the container's own init, which has others' too.
case $(tr '\0' ' ' 2>/dev/null <"/proc/$shell/cmdline") in
*" $name "*) look "$shell" && [ "$parent" -gt 1 ] && root=$parent ;;
esac
# The init stays as long as the shell does, and adopts on.
[ -z "$root" ] || kill -s STOP "$shell"
clock
deadline=$((now + grace))
scan
tell TERM
tell CONT
while [ -n "$victims" ] && [ "$now" -lt "$deadline" ]; do
    sleep 0.05
    scan
    clock
done
deadline=$((now + 300))
while [ -n "$victims" ] && [ "$now" -lt "$deadline" ]; do
    tell KILL
    scan
    clock
done
[ -z "$root" ] || kill -s CONT "$shell"
told_all
