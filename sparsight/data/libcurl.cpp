#include "sparsight/data/libcurl.h"

#include <dlfcn.h>

#include "sparsight/core/error.h"

namespace sparsight {
namespace {

// The name has the version of the interface, which is that of the headers since 2006.
#ifdef __APPLE__
constexpr const char* kLibrary = "libcurl.4.dylib";
#else
constexpr const char* kLibrary = "libcurl.so.4";
#endif

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (!function) fail("cannot download: ", kLibrary, " has no function ", name, "; install libcurl 7.62 or newer");
}

Libcurl load() {
  void* const library = dlopen(kLibrary, RTLD_NOW | RTLD_LOCAL);
  if (!library) fail("cannot download without libcurl (", dlerror(), "); install it (Debian: libcurl4)");
  Libcurl curl;
  find(library, "curl_global_init", curl.global_init);
  find(library, "curl_easy_init", curl.easy_init);
  find(library, "curl_easy_cleanup", curl.easy_cleanup);
  find(library, "curl_easy_setopt", curl.easy_setopt);
  find(library, "curl_easy_perform", curl.easy_perform);
  find(library, "curl_easy_getinfo", curl.easy_getinfo);
  find(library, "curl_easy_strerror", curl.easy_strerror);
  curl.global_init(CURL_GLOBAL_DEFAULT);
  return curl;
}

}  // namespace

const Libcurl& libcurl() {
  static const Libcurl loaded = load();
  return loaded;
}

}  // namespace sparsight
