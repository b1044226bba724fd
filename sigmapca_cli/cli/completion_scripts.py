"""The few lines that bash, zsh and fish need to ask `sigmapca` for candidates, and where each shell looks for them."""

from pathlib import Path

from sigmapca_cli.system.errors import InputError

BASH = r"""# Completion of sigmapca for bash: source this file.
_sigmapca() {
    local IFS=$'\n'
    COMPREPLY=($(_SIGMAPCA_COMPLETE=bash "$1" "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
    # A key waits for its value: no space behind the sign.
    [[ ${#COMPREPLY[@]} -gt 0 && ${COMPREPLY[0]} == *= ]] && compopt -o nospace
    return 0
}
complete -o default -o nosort -F _sigmapca sigmapca
"""

ZSH = r"""#compdef sigmapca
# Completion of sigmapca for zsh: a file named _sigmapca in a folder of $fpath.
_sigmapca() {
    local line value
    local -a whole keys
    for line in ${(f)"$(_SIGMAPCA_COMPLETE=zsh ${~words[1]} "${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)"}; do
        value=${${line%%$'\t'*}//:/\\:}
        if [[ $line == *$'\t'* ]]; then
            whole+=("$value:${line#*$'\t'}")
        elif [[ $value == *= ]]; then
            keys+=("$value")
        else
            whole+=("$value")
        fi
    done
    if (( $#whole + $#keys )); then
        (( $#whole )) && _describe -V sigmapca whole
        (( $#keys )) && _describe -V sigmapca keys -S ''
    else
        compset -P '*='
        _files
    fi
}
if [[ ${funcstack[1]} == _sigmapca ]]; then _sigmapca "$@"; else compdef _sigmapca sigmapca; fi
"""

FISH = r"""# Completion of sigmapca for fish: a file of ~/.config/fish/completions.
function __sigmapca_complete
    set -l words (commandline -opc)
    set -l word (commandline -ct)
    set -l found (_SIGMAPCA_COMPLETE=fish $words[1] $words[2..] "$word" 2>/dev/null)
    if test (count $found) -gt 0
        printf '%s\n' $found
    else
        set -l key (string match -r '^.*=' -- $word)
        for path in (__fish_complete_path (string replace -r '^.*=' '' -- $word))
            echo "$key$path"
        end
    end
end
complete --command sigmapca --no-files --keep-order --arguments '(__sigmapca_complete)'
"""

SCRIPTS = {"bash": BASH, "zsh": ZSH, "fish": FISH}
# Where the script goes, the start-up file that must know of it, and the line that tells it.
PLACES = {
    "bash": (".bash_completions/sigmapca.sh", ".bashrc", "source ~/.bash_completions/sigmapca.sh"),
    "zsh": (".zfunc/_sigmapca", ".zshrc", "fpath=(~/.zfunc $fpath); autoload -Uz compinit; compinit"),
    "fish": (".config/fish/completions/sigmapca.fish", None, None),
}


def script(shell: str) -> str:
    """The script for a shell; InputError for a shell that has none."""
    if shell not in SCRIPTS:
        raise InputError(f"{shell}: completion is for {', '.join(SCRIPTS)}")
    return SCRIPTS[shell]


def install(shell: str) -> str:
    """Put the script where the shell finds it, add a line to its start-up file once, and say what was done."""
    text = script(shell)
    place, startup, line = PLACES[shell]
    path = Path.home() / place
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    done = f"{path} written"
    if startup and line:
        file = Path.home() / startup
        before = file.read_text(encoding="utf-8") if file.exists() else ""
        if line not in before.splitlines():
            with file.open("a", encoding="utf-8") as end:
                end.write(("" if not before or before.endswith("\n") else "\n") + line + "\n")
            done += f", one line added to {file}"
    return f"{done}; it works in the next {shell} that you start"
