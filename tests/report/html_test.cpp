#include "sparsight/report/html.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace sparsight::html_test {
namespace {

TEST(Html, Escapes) {
  EXPECT_EQ(escape_html("<b a=\"1\" c='2'>&"), "&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;");
  EXPECT_EQ(escape_html("gr\xC3\xB6\xC3\x9F"), "gr\xC3\xB6\xC3\x9F");
  EXPECT_EQ(escape_html("a\xFFz"), "a\xEF\xBF\xBDz") << "bytes that are no UTF-8";
  EXPECT_EQ(escape_html(std::string("a\0z\x1B", 4)), "az") << "control characters";
}

TEST(Html, ScriptDataCannotEndTheScript) {
  const Json hostile = {{"</script><!--", "<script>\xE2\x80\xA8&"}};
  const std::string text = script_json(hostile);
  EXPECT_EQ(text.find_first_of("<>&"), std::string::npos) << text;
  EXPECT_EQ(Json::parse(text), hostile);
}

// RFC 4648, section 10; the last one by hand: 0xFFFEFD = 111111 111111 111011 111101.
TEST(Html, Base64) {
  EXPECT_EQ(data_uri("a/b", ""), "data:a/b;base64,");
  EXPECT_EQ(data_uri("a/b", "f"), "data:a/b;base64,Zg==");
  EXPECT_EQ(data_uri("a/b", "fo"), "data:a/b;base64,Zm8=");
  EXPECT_EQ(data_uri("a/b", "foobar"), "data:a/b;base64,Zm9vYmFy");
  EXPECT_EQ(data_uri("a/b", "\xFF\xFE\xFD"), "data:a/b;base64,//79");
}

}  // namespace
}  // namespace sparsight::html_test
