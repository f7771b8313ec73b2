#include "sparsight/data/hash.h"

#include <openssl/evp.h>

#include <algorithm>

#include "sparsight/core/error.h"
#include "sparsight/core/input_file.h"

namespace sparsight {

struct Hasher::Context {
  EVP_MD_CTX* value = EVP_MD_CTX_new();
  ~Context() { EVP_MD_CTX_free(value); }
};

Hasher::Hasher(const std::string& algorithm) : context_(std::make_unique<Context>()) {
  SPARSIGHT_CHECK(algorithm == "sha256" || algorithm == "md5");
  if (EVP_DigestInit_ex(context_->value, algorithm == "md5" ? EVP_md5() : EVP_sha256(), nullptr) != 1)
    fail("the system's OpenSSL does not support ", algorithm, "; checksums cannot be verified");
}

Hasher::~Hasher() = default;

void Hasher::add(const void* data, size_t bytes) {
  SPARSIGHT_CHECK(EVP_DigestUpdate(context_->value, data, bytes) == 1);
}

std::string Hasher::hex() {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int length = 0;
  SPARSIGHT_CHECK(EVP_DigestFinal_ex(context_->value, digest, &length) == 1);
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (unsigned int i = 0; i < length; ++i) text += {kDigits[digest[i] >> 4], kDigits[digest[i] & 15]};
  return text;
}

std::string digest_algorithm(const std::string& hex) { return hex.size() == 32 ? "md5" : "sha256"; }

std::string hash_bytes(ByteView bytes, const std::string& algorithm) {
  Hasher hasher(algorithm);
  hasher.add(bytes.data(), bytes.size());
  return hasher.hex();
}

std::string hash_file(const std::string& path, const std::string& algorithm) {
  const Descriptor file = open_for_reading(path);
  Hasher hasher(algorithm);
  Bytes buffer(1 << 20);
  const size_t size = size_of_file(file, path);
  for (size_t at = 0; at < size; at += buffer.size()) {
    buffer.resize(std::min(buffer.size(), size - at));
    read_all_at(file.get(), buffer.data(), buffer.size(), at, path);
    hasher.add(buffer.data(), buffer.size());
  }
  return hasher.hex();
}

}  // namespace sparsight
