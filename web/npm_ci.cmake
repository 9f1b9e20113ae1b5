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
  # No package needs to run a program of its own when it is installed.
  execute_process(COMMAND ${NPM} ci --ignore-scripts --no-audit --no-fund --loglevel=error
                  WORKING_DIRECTORY ${folder} RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "web: `npm ci` failed in ${folder}. It needs the network once; or configure "
                        "with -DATTUNE_WEB=OFF")
  endif()
  file(WRITE ${stamp} ${wanted})
endif()
