#include "sparsight/serve/access_token.h"

#include <algorithm>
#include <cctype>

namespace sparsight::serve {

bool is_authorized(std::string_view authorization, const std::string& token) {
  constexpr std::string_view kScheme = "bearer ";
  const std::string_view scheme = authorization.substr(0, kScheme.size());
  if (!std::ranges::equal(scheme, kScheme, {}, [](unsigned char c) { return static_cast<char>(std::tolower(c)); }))
    return false;
  const std::string_view given = authorization.substr(kScheme.size());
  volatile unsigned char difference = given.size() == token.size() ? 0 : 1;  // volatile: no early end
  for (size_t i = 0; i < given.size(); ++i) {
    const auto wanted = static_cast<unsigned char>(token.empty() ? 0 : token[i % token.size()]);
    difference = static_cast<unsigned char>(difference | (static_cast<unsigned char>(given[i]) ^ wanted));
  }
  return difference == 0;
}

}  // namespace sparsight::serve
