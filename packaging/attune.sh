#!/bin/sh
# Runs Attune with the libraries that it was built with, the C library and its loader among them.
program=$(readlink -f -- "$0")
lib=${program%/*/*}/lib/attune
exec "$lib/attune-loader" --inhibit-cache --library-path "$lib" --argv0 "$program" "$lib/attune" "$@"
