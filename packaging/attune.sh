#!/bin/sh
# Runs Attune with the libraries that it was built with, the C library and its loader among them.
program=$(readlink -f -- "$0")
lib=${program%/*/*}/lib/attune
# The machine's own libraries come last, for NVIDIA's, which no package can bring.
exec "$lib/attune-loader" --library-path "$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" --argv0 "$program" \
  "$lib/attune" "$@"
