#!/bin/sh
# Runs Attune with the libraries that it was built with, including the C library and its loader.
program=$(readlink -f -- "$0")
lib=${program%/*/*}/lib/attune
# The machine's libraries come last. NVIDIA's libraries are only there, because no package may contain them.
exec "$lib/attune-loader" --library-path "$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" --argv0 "$program" \
  "$lib/attune" "$@"
