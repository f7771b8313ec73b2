// The functions of include/sparsight/infer.h: checks of arguments, and no exception gets through.
#include "sparsight/infer.h"

#include <algorithm>
#include <cstring>

#include "runtime/model.h"
#include "runtime/session.h"
#include "runtime/status.h"

namespace {

using sparsight::ByteView;
using sparsight::runtime::fail_argument;
using sparsight::runtime::guarded;
using sparsight::runtime::require;

// What the caller's version of a structure has of ours; what only a later version has is zeros.
template <class Struct>
void copy_to_caller(const Struct& from, Struct* to, size_t bytes) {
  const size_t known = std::min(bytes, sizeof from);
  std::memcpy(to, &from, known);
  std::memset(reinterpret_cast<char*>(to) + known, 0, bytes - known);
}

constexpr size_t kMaxStructBytes = 4096;

void check_struct_bytes(size_t bytes, const char* name) {
  if (bytes == 0 || bytes > kMaxStructBytes)
    fail_argument(name, " is ", bytes, "; give the size of the structure, as sizeof says it");
}

sparsight_infer_result result_from_caller(const sparsight_infer_result* result) {
  require(result, "result");
  check_struct_bytes(result->struct_bytes, "result->struct_bytes");
  sparsight_infer_result known{};
  std::memcpy(&known, result, std::min(result->struct_bytes, sizeof known));
  return known;
}

void open(std::shared_ptr<const sparsight::engine::ByteSource> file, int64_t kept_experts,
          const std::string& packed_beside, sparsight_infer_model** model) {
  *model = new sparsight_infer_model{sparsight::runtime::read_model(std::move(file), kept_experts, packed_beside)};
}

}  // namespace

const char* sparsight_infer_version() { return SPARSIGHT_VERSION; }

const char* sparsight_infer_last_error() { return sparsight::runtime::last_error(); }

int sparsight_infer_open(const char* path, int64_t kept_experts, sparsight_infer_model** model) {
  return guarded(SPARSIGHT_INFER_BAD_MODEL, [&] {
    require(model, "model");
    *model = nullptr;
    require(path, "path");
    const bool packs = kept_experts < SPARSIGHT_INFER_PACK_CACHE / 2;
    if (packs) kept_experts -= SPARSIGHT_INFER_PACK_CACHE;
    if (kept_experts < SPARSIGHT_INFER_ALL_EXPERTS)
      fail_argument("kept_experts is ", kept_experts, "; give a number of experts, or SPARSIGHT_INFER_ALL_EXPERTS");
    open(sparsight::engine::open_file(path), kept_experts, packs ? path : "", model);
  });
}

int sparsight_infer_open_memory(const void* bytes, size_t count, sparsight_infer_model** model) {
  return guarded(SPARSIGHT_INFER_BAD_MODEL, [&] {
    require(model, "model");
    *model = nullptr;
    require(bytes, "bytes");
    if (count > PTRDIFF_MAX) fail_argument("a model of ", count, " bytes was given, more than memory has");
    open(sparsight::engine::bytes_in_memory({static_cast<const uint8_t*>(bytes), count}, "the model in memory"),
         SPARSIGHT_INFER_ALL_EXPERTS, "", model);
  });
}

int sparsight_infer_close(sparsight_infer_model* model) {
  delete model;
  return SPARSIGHT_INFER_OK;
}

int sparsight_infer_get_info(const sparsight_infer_model* model, sparsight_infer_info* info, size_t info_bytes) {
  return guarded(SPARSIGHT_INFER_BAD_ARGUMENT, [&] {
    require(model, "model");
    require(info, "info");
    check_struct_bytes(info_bytes, "info_bytes");
    copy_to_caller(sparsight::runtime::model_info(*model->model), info, info_bytes);
  });
}

const char* sparsight_infer_class_name(const sparsight_infer_model* model, int64_t number) {
  const char* name = nullptr;
  guarded(SPARSIGHT_INFER_BAD_ARGUMENT, [&] {
    require(model, "model");
    const auto& classes = model->model->classes;
    if (number < 0 || number >= std::ssize(classes))
      fail_argument("there is no class ", number, "; the model has classes 0 to ", std::ssize(classes) - 1);
    name = classes[static_cast<size_t>(number)].c_str();
  });
  return name;
}

int sparsight_infer_open_session(const sparsight_infer_model* model, sparsight_infer_session** session) {
  return guarded(SPARSIGHT_INFER_BAD_ARGUMENT, [&] {
    require(session, "session");
    *session = nullptr;
    require(model, "model");
    *session = new sparsight_infer_session{sparsight::runtime::Session(model->model)};
  });
}

int sparsight_infer_close_session(sparsight_infer_session* session) {
  return guarded(SPARSIGHT_INFER_BUSY, [&] {
    if (session) session->session.check_unused();
    delete session;
  });
}

int sparsight_infer_set_threads(sparsight_infer_session* session, int64_t threads) {
  return guarded(SPARSIGHT_INFER_BAD_ARGUMENT, [&] {
    require(session, "session");
    session->session.set_threads(threads);
  });
}

int sparsight_infer_set_on_routing(sparsight_infer_session* session, sparsight_infer_on_routing call, void* user) {
  return guarded(SPARSIGHT_INFER_BAD_ARGUMENT, [&] {
    require(session, "session");
    session->session.set_on_routing(call, user);
  });
}

int sparsight_infer_classify_pixels(sparsight_infer_session* session, const float* pixels, const int64_t shape[4],
                                    const sparsight_infer_result* result) {
  return guarded(SPARSIGHT_INFER_BAD_MODEL, [&] {
    require(session, "session");
    require(pixels, "pixels");
    require(shape, "shape");
    session->session.classify_pixels(pixels, shape, result_from_caller(result));
  });
}

int sparsight_infer_classify_image(sparsight_infer_session* session, const uint8_t* bytes, int64_t height,
                                   int64_t width, int64_t channels, int64_t row_bytes,
                                   const sparsight_infer_result* result) {
  return guarded(SPARSIGHT_INFER_BAD_MODEL, [&] {
    require(session, "session");
    session->session.classify_image({bytes, height, width, channels, row_bytes}, result_from_caller(result));
  });
}

int sparsight_infer_classify_encoded(sparsight_infer_session* session, const void* bytes, size_t count,
                                     const sparsight_infer_result* result) {
  return guarded(SPARSIGHT_INFER_BAD_MODEL, [&] {
    require(session, "session");
    require(bytes, "bytes");
    if (count > static_cast<size_t>(sparsight::kMaxImageFileBytes))
      fail_argument("an image file of ", count, " bytes was given; at most ", sparsight::kMaxImageFileBytes,
                    " are read");
    session->session.classify_encoded({static_cast<const uint8_t*>(bytes), count}, result_from_caller(result));
  });
}

int sparsight_infer_get_routing(const sparsight_infer_session* session, int64_t decision,
                                sparsight_infer_routing* routing, size_t routing_bytes) {
  return guarded(SPARSIGHT_INFER_BAD_ARGUMENT, [&] {
    require(session, "session");
    require(routing, "routing");
    check_struct_bytes(routing_bytes, "routing_bytes");
    copy_to_caller(session->session.routing(decision), routing, routing_bytes);
  });
}
