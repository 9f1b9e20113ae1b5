#pragma once

// The options that libcurl 7.85 deprecates are the only ones that earlier versions know.
#define CURL_DISABLE_DEPRECATION
#include <curl/curl.h>

#include <string>

#include "base/result.h"

namespace attune::download {

// The functions of libcurl that downloads use.
struct Curl {
  decltype(&curl_global_init) global_init = nullptr;
  decltype(&curl_version_info) version_info = nullptr;
  decltype(&curl_easy_init) easy_init = nullptr;
  decltype(&curl_easy_cleanup) easy_cleanup = nullptr;
  decltype(&curl_easy_setopt) easy_setopt = nullptr;
  decltype(&curl_easy_getinfo) easy_getinfo = nullptr;
  decltype(&curl_easy_perform) easy_perform = nullptr;
  decltype(&curl_easy_strerror) easy_strerror = nullptr;

  // The file with the certificates of authorities, if libcurl must be told where it is.
  // Distributions keep it at different paths, and libcurl may come from another distribution.
  std::string certificates;
};

// Opens libcurl, which stays open. kUnavailable: it is not installed, or cannot be used.
Result<Curl> OpenCurl(const std::string& library);

// The libcurl of this process, which the first call opens; a failed call can be repeated.
Result<const Curl*> SharedCurl();

}  // namespace attune::download
