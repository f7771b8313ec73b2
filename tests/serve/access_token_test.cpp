#include "sparsight/serve/access_token.h"

#include <gtest/gtest.h>

namespace sparsight::serve {
namespace {

TEST(AccessToken, IsTheWholeToken) {
  EXPECT_TRUE(is_authorized("Bearer secret", "secret"));
  EXPECT_TRUE(is_authorized("bearer secret", "secret"));
  for (const char* header : {"", "Bearer", "Bearer ", "secret", "Basic secret", "Bearer secre", "Bearer secrets",
                             "Bearer secretsecret", "Bearer Secret", "Bearer  secret"})
    EXPECT_FALSE(is_authorized(header, "secret")) << header;
  EXPECT_FALSE(is_authorized(std::string_view("Bearer secret\0", 14), "secret"));
}

}  // namespace
}  // namespace sparsight::serve
