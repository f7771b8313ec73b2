// Exceptions become codes and a text at the boundary of the C interface (include/sparsight/infer.h).
#pragma once

#include "sparsight/core/error.h"
#include "sparsight/core/function_ref.h"
#include "sparsight/infer.h"

namespace sparsight::runtime {

// An Error with the code that the caller gets.
class StatusError final : public Error {
 public:
  StatusError(sparsight_infer_status code, const std::string& message) : Error(message), status(code) {}
  const sparsight_infer_status status;
};

template <class... Parts>
[[noreturn]] void fail_argument(const Parts&... parts) {
  throw StatusError(SPARSIGHT_INFER_BAD_ARGUMENT, cat(parts...));
}

// Raises StatusError if the pointer that a caller gave as `name` is null.
void require(const void* pointer, const char* name);

// Does the work; an Error becomes one of the image that the caller gave.
void as_image_errors(FunctionRef<void()> work);

// Does the work; what it throws becomes a code and the text of last_error(). of_errors: the code of an Error that has
// none of its own.
int guarded(sparsight_infer_status of_errors, FunctionRef<void()> work) noexcept;

const char* last_error() noexcept;

}  // namespace sparsight::runtime
