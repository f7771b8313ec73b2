#include "runtime/status.h"

#include <algorithm>
#include <cstring>
#include <new>

#include "sparsight/core/printable.h"

namespace sparsight::runtime {
namespace {

// In the thread's own memory, so that there is room for it when there is no other memory left.
thread_local char error_text[2048] = "";

void copy_error(std::string_view text) noexcept {
  size_t size = std::min(text.size(), sizeof error_text - 1);
  if (size < text.size())  // not in the middle of a character
    while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xC0) == 0x80) --size;
  std::memcpy(error_text, text.data(), size);
  error_text[size] = '\0';
}

int failed(sparsight_infer_status status, const char* text) noexcept {
  try {
    copy_error(printable(text));
  } catch (...) {
    copy_error(text);
  }
  return status;
}

}  // namespace

void require(const void* pointer, const char* name) {
  if (!pointer) fail_argument(name, " is null");
}

void as_image_errors(FunctionRef<void()> work) {
  try {
    work();
  } catch (const StatusError&) {
    throw;
  } catch (const Error& error) {
    throw StatusError(SPARSIGHT_INFER_BAD_IMAGE, error.what());
  }
}

int guarded(sparsight_infer_status of_errors, FunctionRef<void()> work) noexcept {
  try {
    work();
    return SPARSIGHT_INFER_OK;
  } catch (const StatusError& error) {
    return failed(error.status, error.what());
  } catch (const UsageError& error) {
    return failed(SPARSIGHT_INFER_BAD_ARGUMENT, error.what());
  } catch (const Error& error) {
    return failed(of_errors, error.what());
  } catch (const std::bad_alloc&) {
    return failed(SPARSIGHT_INFER_NO_MEMORY,
                  "not enough memory; classify fewer images at once, or use a smaller model");
  } catch (const std::length_error&) {
    return failed(SPARSIGHT_INFER_NO_MEMORY,
                  "not enough memory; classify fewer images at once, or use a smaller model");
  } catch (const std::exception& error) {
    return failed(SPARSIGHT_INFER_INTERNAL, error.what());
  } catch (...) {
    return failed(SPARSIGHT_INFER_INTERNAL, "an unknown exception");
  }
}

const char* last_error() noexcept { return error_text; }

}  // namespace sparsight::runtime
