#include "sparsight/report/html.h"

#include <nlohmann/json.hpp>

namespace sparsight {

std::string escape_html(std::string_view text) {
  // The JSON writer replaces invalid UTF-8; parsing its output removes the quotes and escapes again.
  const std::string valid = Json::parse(Json(std::string(text)).dump(-1, ' ', false, Json::error_handler_t::replace));
  std::string escaped;
  for (char c : valid) {
    switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      case '\'':
        escaped += "&#39;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20 || c == '\n' || c == '\t') escaped += c;
    }
  }
  return escaped;
}

std::string script_json(const Json& value) {
  std::string safe;
  for (char c : value.dump(-1, ' ', /*ensure_ascii=*/true, Json::error_handler_t::replace)) {
    if (c == '<') {
      safe += "\\u003c";
    } else if (c == '>') {
      safe += "\\u003e";
    } else if (c == '&') {
      safe += "\\u0026";
    } else {
      safe += c;
    }
  }
  return safe;
}

std::string data_uri(std::string_view media_type, std::string_view bytes) {
  static constexpr char kDigits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string uri = "data:" + std::string(media_type) + ";base64,";
  for (size_t i = 0; i < bytes.size(); i += 3) {
    uint32_t word = 0;
    for (size_t j = 0; j < 3; ++j) word = word << 8 | (i + j < bytes.size() ? static_cast<uint8_t>(bytes[i + j]) : 0);
    for (size_t j = 0; j < 4; ++j) uri += i + j > bytes.size() ? '=' : kDigits[word >> (18 - 6 * j) & 63];
  }
  return uri;
}

}  // namespace sparsight
