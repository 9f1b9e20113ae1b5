#include "cli/completion/scripts.h"

#include <utility>

namespace attune::cli {
namespace {

// Bash also splits words at = and :, and replaces only the last piece. The script joins the pieces
// for `attune __complete`, and removes from its answers the part that bash keeps.
constexpr std::string_view kBash =
    R"script(# bash completion for attune. Enable it with: source <(attune completion bash)
_attune() {
  local rest=${COMP_LINE:0:COMP_POINT} word piece i
  local -a words=() lines=()
  for ((i = 0; i <= COMP_CWORD; i++)); do
    piece=${COMP_WORDS[i]}
    word=${rest#"${rest%%[![:blank:]]*}"}
    ((i < COMP_CWORD)) || piece=$word
    if [[ $i -gt 0 && $word == "$rest" && -n $rest ]]; then
      words[${#words[@]} - 1]+=$piece
    else
      words+=("$piece")
    fi
    rest=${word#"$piece"}
  done
  [[ $piece == [=:]* ]] && piece=${piece##*[=:]}
  local whole=${words[${#words[@]} - 1]}
  local kept=${whole%"$piece"}

  mapfile -t lines < <("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  case ${lines[0]} in
    files)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -f -- "$piece")
      ;;
    folders)
      compopt -o filenames 2>/dev/null
      mapfile -t COMPREPLY < <(compgen -d -- "$piece")
      ;;
    words)
      for word in "${lines[@]:1}"; do
        word=${word%%$'\t'*}
        COMPREPLY+=("${word#"$kept"}")
      done
      ;;
  esac
}
complete -F _attune attune
)script";

constexpr std::string_view kZsh = R"script(#compdef attune
# zsh completion for attune. Enable it with: source <(attune completion zsh)
_attune() {
  local -a lines described
  local line word
  lines=("${(@f)$("${(Q)words[1]}" __complete "${(@Q)words[2,CURRENT-1]}" "${(Q)PREFIX}" 2>/dev/null)}")
  case $lines[1] in
    files)
      compset -P '--*='
      _files
      ;;
    folders)
      compset -P '--*='
      _files -/
      ;;
    words)
      for line in "${(@)lines[2,-1]}"; do
        word=${line%%$'\t'*}
        described+=("${word//:/\\:}${${line#$word}/#$'\t'/:}")
      done
      _describe attune described
      ;;
  esac
}
if [[ $funcstack[1] == _attune ]]; then
  _attune "$@"
else
  compdef _attune attune
fi
)script";

constexpr std::string_view kFish =
    R"script(# fish completion for attune. Enable it with: attune completion fish | source
function __attune_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l program $words[1]
    set -e words[1]
    set -l lines ($program __complete $words "$current" 2>/dev/null)
    set -l kind $lines[1]
    set -e lines[1]
    set -l option (string match -r -- '^--[^=]*=' $current)
    set -l path (string replace -r -- '^--[^=]*=' '' $current)
    switch "$kind"
        case files
            printf '%s\n' "$option"(__fish_complete_path "$path")
        case folders
            printf '%s\n' "$option"(__fish_complete_directories "$path" '')
        case words
            printf '%s\n' $lines
    end
end
complete -c attune -f -a '(__attune_complete)'
)script";

constexpr std::pair<std::string_view, std::string_view> kScripts[] = {
    {"bash", kBash}, {"zsh", kZsh}, {"fish", kFish}};

}  // namespace

std::vector<std::string> Shells() {
  std::vector<std::string> names;
  for (const auto& [shell, script] : kScripts) names.emplace_back(shell);
  return names;
}

std::string_view CompletionScript(std::string_view shell) {
  for (const auto& [name, script] : kScripts) {
    if (name == shell) return script;
  }
  return "";
}

}  // namespace attune::cli
