# Stands in for `source` and `.`: its arguments are the number of the caller's own
# arguments, these arguments, and what the caller wrote behind `source`.

__source_file=${*:$1 + 2:1}
case ${__source_file} in
  /shell_lib.sh | /frameworks/shell/* | /framework/shell/*)
    if [[ ! -e ${__source_file} ]]; then
      case ${__source_file} in
        /framework/*) __source_file=/frameworks/${__source_file#/framework/} ;;
      esac
      __source_file="${BASH_SOURCE[0]%/*}${__source_file}"
    fi
    ;;
esac
# `set --` would be seen by the caller in bash 4.4, so nothing here calls it.
if (( $# > $1 + 2 )); then
  # Arguments behind the file are what it sees.
  builtin source "${__source_file}" "${@:$1 + 3}"
elif (( $1 > 0 )); then
  # Otherwise it sees those of the caller.
  builtin source "${__source_file}" "${@:2:$1}"
else
  # A file without arguments sees the ones of this file, so there must be none.
  shift "$#"
  builtin source "${__source_file}"
fi
