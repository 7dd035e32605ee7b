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
if (( $# > $1 + 2 )); then
  # Arguments behind the file are what it sees.
  set -- "${__source_file}" "${@:$1 + 3}"
else
  # Otherwise it sees those of the caller.
  set -- "${__source_file}" "${@:2:$1}"
fi
unset __source_file
if (( $# > 1 )); then
  builtin source "$@"
else
  # A file without arguments sees the ones of this file, so there must be none.
  __source_file=$1
  shift
  builtin source "${__source_file}"
fi
