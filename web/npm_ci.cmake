# cmake -DNPM=npm -P web/npm_ci.cmake: installs exactly what package-lock.json names, unless that
# has been done since the lock file changed. Safe when two build folders do it at once.

set(folder ${CMAKE_CURRENT_LIST_DIR})
set(stamp ${folder}/node_modules/.attune-installed)
if(NOT NPM)
  set(NPM npm)
endif()

file(LOCK ${folder}/.npm-ci.lock TIMEOUT 600)
file(SHA256 ${folder}/package-lock.json wanted)
if(EXISTS ${stamp})
  file(READ ${stamp} installed)
endif()
if(NOT "${installed}" STREQUAL "${wanted}")
  message(STATUS "web: npm ci")
  file(REMOVE ${stamp})  # an interrupted npm leaves no stamp, whichever lock file comes next
  # No package needs to run a program of its own when it is installed. npm retries after 2 to 10 s, by default
  # after 10 to 60 s.
  execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=warn
                          --fetch-retry-mintimeout=2000 --fetch-retry-maxtimeout=10000
                  WORKING_DIRECTORY ${folder} RESULT_VARIABLE status
                  OUTPUT_VARIABLE output ERROR_VARIABLE output)
  # npm only warns of files that it could not write, as on a full disk. It then succeeds.
  if(NOT status EQUAL 0 OR output MATCHES "TAR_ENTRY_ERROR|npm error")
    string(REGEX MATCHALL "npm [^\n]*" messages "${output}")
    list(REMOVE_DUPLICATES messages)
    list(JOIN messages "\n" messages)
    message("${messages}")
    message(FATAL_ERROR "web: `npm ci` failed in ${folder}. It needs the network once, and 100 MB of disk space; or "
                        "configure with -DATTUNE_WEB=OFF")
  endif()
  file(WRITE ${stamp} ${wanted})
endif()
