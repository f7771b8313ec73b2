light_sources(
  report/accuracy_cells.cpp
  report/attack_csv.cpp
  report/attack_curve_page.cpp
  report/attack_curve_text.cpp
  report/attack_example_files.cpp
  report/attack_page.cpp
  report/attack_routing_text.cpp
  report/attack_sections.cpp
  report/attack_text.cpp
  report/assets.cpp
  report/charts.cpp
  report/class_information_text.cpp
  report/comparison_text.cpp
  report/confusion_graph.cpp
  report/cost_table.cpp
  report/expert_map_chart.cpp
  report/expert_map_sections.cpp
  report/experts_per_token.cpp
  report/explain_folder.cpp
  report/format.cpp
  report/html.cpp
  report/line_chart.cpp
  report/page.cpp
  report/read_attacks.cpp
  report/read_explanation.cpp
  report/run_file.cpp
  report/run_metrics.cpp
  report/report.cpp
  report/report_page.cpp
  report/run_comparison.cpp
  report/run_summary.cpp
  report/superclass_folder.cpp
  report/superclass_report.cpp
  report/superclass_sections.cpp
  report/superclass_text.cpp
  report/table.cpp
  report/text_table.cpp)
torch_sources(
  report/explain_items.cpp
  report/layer_probe_table.cpp)

# The scripts and styles of the report are built into the program: it needs no files beside it and no network.
enable_language(ASM)
file(GLOB _report_assets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/third_party/vega/*.js
  ${PROJECT_SOURCE_DIR}/sparsight/report/page/*)
target_sources(sparsight PRIVATE report/assets.S)
set_source_files_properties(report/assets.S PROPERTIES
  COMPILE_OPTIONS "-I${PROJECT_SOURCE_DIR}" OBJECT_DEPENDS "${_report_assets}")
