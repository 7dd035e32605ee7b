# Read by bash before a hook, through BASH_ENV, where there is no /shell_lib.sh: it
# sends `source /shell_lib.sh` and `source /frameworks/shell/…` to the files beside it.
#
# It works through aliases and not through functions: a file that is sourced by a
# function would lose its declarations and the hook's arguments.

shopt -s expand_aliases
printf -v ADDON_OPERATOR_SOURCE 'builtin source %q "$#" "$@"' "${BASH_SOURCE[0]%/*}/source.sh"
alias source="${ADDON_OPERATOR_SOURCE}" .="${ADDON_OPERATOR_SOURCE}"
unset ADDON_OPERATOR_SOURCE

# What the operator was started with comes last.
if [[ -n ${ADDON_OPERATOR_NEXT_BASH_ENV:-} ]]; then
  builtin source "${ADDON_OPERATOR_NEXT_BASH_ENV}"
fi
