#include "sparsight/report/attack/attack_sections.h"

#include "sparsight/core/error.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/report/attack/attack_curve_page.h"
#include "sparsight/report/attack/attack_curve_text.h"
#include "sparsight/report/attack/attack_page.h"
#include "sparsight/report/html.h"

namespace sparsight {
namespace {

std::string notices_html(const std::vector<std::string>& notices) {
  return notices.empty() ? "" : "<div class=\"notice\">" + html_list(notices) + "</div>\n";
}

void add_attack_section(Page& page, const ShownAttack& attack, size_t number) {
  page.open_section(cat("attack_", number), "Attack " + escape_html(attack.name), "", true);
  if (attack.curve.is_object()) {
    page.body += notices_html(attack_curve_notices(attack.curve)) + html_rows(attack_curve_rows(attack.curve));
    page.charts(attack_curve_charts(attack.curve));
  }
  if (attack.result.is_object()) {
    if (attack.curve.is_object())
      page.body += "<h3>Epsilon " + html_text(text(member(attack.result, "threat"), "given")) + "</h3>\n";
    page.body += notices_html(attack_notices(attack.result)) + attack_tables_html(attack.result) +
                 attack_examples_html(attack.examples) + "<h3>Settings</h3>\n" + attack_settings_html(attack.result);
  }
  page.close_section();
}

}  // namespace

void add_attacks(Page& page, const std::vector<ShownAttack>& attacks) {
  if (attacks.empty()) return;
  page.open_section("attacks", "Attacks", cat(attacks.size(), " in attacks/"), true);
  page.body += html_rows(attack_overview_rows(attacks));
  page.close_section();
  for (size_t i = 0; i < attacks.size(); ++i) add_attack_section(page, attacks[i], i);
}

}  // namespace sparsight
