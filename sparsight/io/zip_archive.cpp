#include "sparsight/io/zip_archive.h"

#include <zip.h>

#include "sparsight/core/error.h"

namespace sparsight {

struct ZipArchive::Handle {
  zip_t* zip;
  ~Handle() { zip_discard(zip); }
};

ZipArchive::ZipArchive(const std::string& path) {
  int code = 0;
  zip_t* const zip = zip_open(path.c_str(), ZIP_RDONLY | ZIP_CHECKCONS, &code);
  if (!zip) {
    zip_error_t error;
    zip_error_init_with_code(&error, code);
    const std::string reason = zip_error_strerror(&error);
    zip_error_fini(&error);
    fail(path, " is not a zip archive or is damaged: ", reason);
  }
  handle_.reset(new Handle{zip});
}

ZipArchive::~ZipArchive() = default;

std::string ZipArchive::first_folder() const {
  const char* const name = zip_get_name(handle_->zip, 0, ZIP_FL_ENC_RAW);
  const std::string first = name ? name : "";
  return first.substr(0, first.find('/') == std::string::npos ? 0 : first.find('/') + 1);
}

bool ZipArchive::has(const std::string& part) const {
  return zip_name_locate(handle_->zip, part.c_str(), ZIP_FL_ENC_RAW) >= 0;
}

uint64_t ZipArchive::bytes(const std::string& part) const {
  zip_stat_t status;
  zip_stat_init(&status);
  return zip_stat(handle_->zip, part.c_str(), ZIP_FL_ENC_RAW, &status) == 0 && (status.valid & ZIP_STAT_SIZE)
             ? status.size
             : 0;
}

bool ZipArchive::read(const std::string& part, void* to, size_t bytes) const {
  zip_file_t* const file = zip_fopen(handle_->zip, part.c_str(), ZIP_FL_ENC_RAW);
  if (!file) return false;
  auto* next = static_cast<char*>(to);
  size_t missing = bytes;
  while (missing > 0) {
    const zip_int64_t got = zip_fread(file, next, missing);
    if (got <= 0) break;
    next += got;
    missing -= static_cast<size_t>(got);
  }
  char beyond;
  const bool ends = missing == 0 && zip_fread(file, &beyond, 1) == 0;  // the CRC is compared at the end
  zip_fclose(file);
  return ends;
}

}  // namespace sparsight
