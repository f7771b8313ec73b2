// libcurl, loaded when something is downloaded: with the thirty libraries that it needs, it would take 5 ms of each
// start of the program.
#pragma once

#include <curl/curl.h>

namespace sparsight {

// Functions of libcurl, under their names without "curl_".
struct Libcurl {
  decltype(&curl_global_init) global_init;
  decltype(&curl_easy_init) easy_init;
  decltype(&curl_easy_cleanup) easy_cleanup;
  decltype(&curl_easy_setopt) easy_setopt;
  decltype(&curl_easy_perform) easy_perform;
  decltype(&curl_easy_getinfo) easy_getinfo;
  decltype(&curl_easy_strerror) easy_strerror;
};

// Initialised. Raises Error if the library cannot be loaded.
const Libcurl& libcurl();

}  // namespace sparsight
