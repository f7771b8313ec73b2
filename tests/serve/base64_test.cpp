// The test vectors of RFC 4648, section 10, and what is no base64.
#include "sparsight/serve/base64.h"

#include <gtest/gtest.h>

namespace sparsight::serve {
namespace {

std::optional<std::string> decoded(std::string_view text) {
  const std::optional<Bytes> bytes = decode_base64(text);
  if (!bytes) return std::nullopt;
  return std::string(bytes->begin(), bytes->end());
}

TEST(Base64, DecodesTheVectorsOfTheRfc) {
  EXPECT_EQ(decoded(""), "");
  EXPECT_EQ(decoded("Zg=="), "f");
  EXPECT_EQ(decoded("Zm8="), "fo");
  EXPECT_EQ(decoded("Zm9v"), "foo");
  EXPECT_EQ(decoded("Zm9vYg=="), "foob");
  EXPECT_EQ(decoded("Zm9vYmE="), "fooba");
  EXPECT_EQ(decoded("Zm9vYmFy"), "foobar");
  EXPECT_EQ(decode_base64("+/+/"), (Bytes{0xFB, 0xFF, 0xBF}));
}

TEST(Base64, RefusesOtherTexts) {
  for (const char* text : {"Z", "Zg", "Zg=", "Zg===", "====", "Z===", "Zg==Zg==", "Zm9v\nZm9v", "Zm9-", "Zm 9", "=m9v"})
    EXPECT_EQ(decoded(text), std::nullopt) << text;
}

}  // namespace
}  // namespace sparsight::serve
