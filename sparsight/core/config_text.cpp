#include "sparsight/core/config_text.h"

#include <algorithm>
#include <sstream>

#include <nlohmann/json.hpp>

#include "sparsight/core/printable.h"
#include "sparsight/core/toml.h"

namespace sparsight {
namespace {

// `text` with | escaped, which would end a table cell.
std::string cell(const std::string& text) {
  std::string escaped;
  for (const char c : text) escaped += c == '|' ? "\\|" : std::string(1, c);
  return escaped;
}

using Describe = std::function<void(const std::function<void(OptionSet&)>&)>;

std::string settings_table(const Describe& describe) {
  std::string table;
  describe([&](OptionSet& set) {
    if (set.options().empty()) {
      table = "No settings.\n";
      return;
    }
    table = "| setting | type | default | allowed | meaning |\n|---|---|---|---|---|\n";
    for (const Option& option : set.options())
      table += cat("| `", option.name, "` | ", cell(option.type), " | `", cell(to_toml_value(option.get())), "` | ",
                   cell(option.allowed), " | ", cell(option.help), " |\n");
  });
  return table;
}

std::string variant_summary(const Section& section, const SectionVariant& variant) {
  const std::string remark = section.remark ? section.remark(variant.name) : "";
  return variant.summary + (remark.empty() ? "" : "; " + remark);
}

// `text` wrapped at 118 columns.
std::string wrapped(const std::string& text) {
  constexpr size_t kColumns = 118;
  std::istringstream words(text);
  std::string lines, line;
  for (std::string word; words >> word;) {
    if (!line.empty() && line.size() + 1 + word.size() > kColumns) {
      lines += line + "\n";
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return lines + line;
}

std::string summary_table(const Section& section) {
  std::string table = "| name | meaning |\n|---|---|\n";
  const auto row = [&](const std::string& name, const std::string& meaning) {
    table += cat("| `", name, "` | ", cell(meaning), " |\n");
  };
  if (!section.default_variant.empty())
    for (const SectionVariant& variant : section.variants) row(variant.name, variant_summary(section, variant));
  else
    section.variants.front().describe([&](OptionSet& set) {
      for (const Option& option : set.options()) row(option.name, option.help);
    });
  return table;
}

// A row for each setting of the section's components; one that several declare alike is one row, which names them.
std::string shared_settings_table(const Section& section) {
  std::vector<std::pair<std::string, std::string>> rows;  // all but the components, and these
  for (const SectionVariant& variant : section.variants)
    variant.describe([&](OptionSet& set) {
      for (const Option& option : set.options()) {
        const std::string name = cat("| `", option.name, "` | ");
        const std::string rest = cat(" | `", cell(to_toml_value(option.get())), "` | ", cell(option.allowed), " | ",
                                     cell(option.help), " |\n");
        const auto row = std::ranges::find(rows, name + '\n' + rest, &std::pair<std::string, std::string>::first);
        if (row == rows.end())
          rows.emplace_back(name + '\n' + rest, "`" + variant.name + "`");
        else
          row->second += ", `" + variant.name + "`";
      }
    });
  std::string table = cat("| setting | of | default | allowed | meaning |\n|---|---|---|---|---|\n");
  for (const auto& [row, components] : rows) {
    const size_t split = row.find('\n');
    table += row.substr(0, split) + components + row.substr(split + 1);
  }
  return table;
}

}  // namespace

std::string toml_with_origins(const Json& resolved, const Config& config) {
  std::string text;
  for (const auto& [section, table] : resolved.items()) {
    text += (text.empty() ? "[" : "\n[") + section + "]\n";
    std::vector<std::pair<std::string, std::string>> lines;
    size_t width = 0;
    for (const auto& [key, value] : table.items()) {
      lines.emplace_back(key + " = " + to_toml_value(value), config.origin(section + "." + key));
      if (lines.back().first.size() <= 60) width = std::max(width, lines.back().first.size());
    }
    for (auto& [line, origin] : lines) {
      line.resize(std::max(width, line.size()), ' ');
      text += line + "  # " + printable(origin) + "\n";
    }
  }
  return text;
}

std::string configuration_reference(const std::vector<Section>& sections) {
  std::string text =
      "# Configuration reference\n\n"
      "Written by `sparsight config docs` from the declarations in the code: do not edit it by hand.\n\n"
      "Set each value in a TOML file under its `[section]`, or as `--set section.setting=value`.\n"
      "`sparsight config show FILE` prints all settings with their values and where each came from.\n";
  for (const Section& section : sections) {
    text += "\n## [" + section.name + "]\n\n" + section.help + "\n";
    if (section.default_variant.empty()) {
      text += "\n" + settings_table(section.variants.front().describe);
      continue;
    }
    text += "\n`name` chooses one of these; the default is `\"" + section.default_variant + "\"`.\n";
    if (section.describe_shared) text += "Settings of every component:\n\n" + settings_table(section.describe_shared);
    for (const SectionVariant& variant : section.variants)
      text += "\n### " + section.name + ".name = \"" + variant.name + "\"\n\n" +
              wrapped(variant_summary(section, variant)) + "\n\n" + settings_table(variant.describe);
  }
  return text;
}

std::string with_tables(const std::string& page, const std::vector<Section>& sections) {
  static const std::string kBeginEnd = " -->", kEnd = "<!-- end of table -->";
  static const std::vector<std::pair<std::string, std::string (*)(const Section&)>> kTables{
      {"<!-- table: ", summary_table}, {"<!-- settings: ", shared_settings_table}};
  std::istringstream lines(page);
  std::string text, open;  // the section of the table that is being left out
  for (std::string line; std::getline(lines, line);) {
    if (line == kEnd) open.clear();
    if (!open.empty()) continue;
    text += line + "\n";
    for (const auto& [begin, table] : kTables) {
      if (!line.starts_with(begin) || !line.ends_with(kBeginEnd)) continue;
      open = line.substr(begin.size(), line.size() - begin.size() - kBeginEnd.size());
      text += table(entry_named(open, sections, "section"));
    }
  }
  if (!open.empty()) fail_usage("the table of [", open, "] has no line ", kEnd, " after it");
  return text;
}

}  // namespace sparsight
