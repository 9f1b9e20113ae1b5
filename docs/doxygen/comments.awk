# Shows doxygen a header with our plain comments as comments that it reads.
#
#   // A block above a declaration speaks of it, and of those below it in the same paragraph that
#   have no comment of their own; a comment behind a declaration speaks of that one. What is indented
#   in a block is code.
#
# Left out are the namespace `trainable`, which is no user's, and what does what it always does:
# destructors, copies, moves and friends. So is the inline namespace `sdk`: users name `attune::Context`.
# Lines keep their numbers.

{
  sub(/^namespace attune::inline sdk \{/, "namespace attune {")
  lines[NR] = $0
}

END {
  for (i = 1; i <= NR; ++i) show(lines[i])
}

function show(line) {
  if (hidden == 0 && line ~ /^namespace trainable \{$/ && internal(i)) {
    hidden = 1
    print line " /// @cond"
  } else if (hidden > 0) {
    hidden += braces(line)
    print (hidden > 0 ? "" : "/** @endcond */ ") line
  } else if (line == "") {
    if (depth == 0) block = ""
    above = behind = 0
    print ""
  } else if (line ~ /^#/ || depth > 0 && line ~ /^ *\/\//) {
    print line
  } else if (line ~ /^ *\/\//) {
    show_comment(line)
  } else {
    show_code(line)
  }
}

function show_comment(line, text) {
  if (behind) {  # it goes on from the line above
    sub(/\/\//, "///<", line)
    print line
    return
  }
  match(line, /^ *\/\//)
  text = substr(line, RLENGTH + 1)
  block = (above ? block : "") text
  above = 1
  print substr(line, 1, RLENGTH) "/" (text ~ /^   / ? "    " : "") text
}

# `depth` counts the braces of function bodies; `block` is the text above the paragraph.
function show_code(line, bare, scope) {
  bare = line
  sub(/ *\/\/.*/, "", bare)
  if (depth == 0 && !unfinished) {
    if (usual(bare)) {
      print ""
      return
    }
    if (bare ~ /^ *(public|private):$/) block = ""
    if (!above && block != "" && line == bare && bare !~ /^ *}/) line = "/**" block " */ " line
  }
  scope = depth == 0 && bare ~ /\{$/ && (heading || bare ~ /^ *(class|struct|namespace) /)
  heading = depth == 0 && !scope && bare ~ /^ *(class|struct) [^;{]*$/  # its bases come below
  if (scope) block = ""
  behind = depth == 0 && bare !~ /^ *}/ && sub(/  \/\/ /, "  ///< ", line)
  if (!scope && (depth > 0 || bare !~ /^ *}/)) depth += braces(bare)
  unfinished = depth > 0 || bare !~ /[;}{:]$/
  above = 0
  print line
}

function braces(code) {
  sub(/\/\/.*/, "", code)
  return gsub(/\{/, "", code) - gsub(/\}/, "", code)
}

function usual(bare) {
  return bare ~ /[;}]$/ &&
      bare ~ /^ *(friend |~|[A-Za-z]+\((const )?[A-Z][A-Za-z]*&&?( other)?\)|[A-Z][A-Za-z]*& operator=)/
}

# Whether the block of namespace trainable that begins here holds nothing that has a public name.
function internal(from, at) {
  for (at = from; at <= NR && lines[at] !~ /^}  \/\/ namespace/; ++at) {
    if (lines[at] ~ /^class ModelOf \{/) return 0  # DistributedModel<M>
  }
  return 1
}
