// What a client did wrong, or what the server cannot do now: an Error with the status of its HTTP answer.
#pragma once

#include "sparsight/core/error.h"

namespace sparsight::serve {

class HttpError : public Error {
 public:
  HttpError(int status, const std::string& message) : Error(message), status_(status) {}
  int status() const { return status_; }

 private:
  int status_;
};

template <class... Parts>
[[noreturn]] void fail_http(int status, const Parts&... parts) {
  throw HttpError(status, cat(parts...));
}

}  // namespace sparsight::serve
