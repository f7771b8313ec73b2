light_sources(
  report/assets.cpp
  report/attack/attack_csv.cpp
  report/attack/attack_curve_page.cpp
  report/attack/attack_curve_text.cpp
  report/attack/attack_example_files.cpp
  report/attack/attack_page.cpp
  report/attack/attack_routing_text.cpp
  report/attack/attack_sections.cpp
  report/attack/attack_text.cpp
  report/attack/read_attacks.cpp
  report/attack/robustbench.cpp
  report/attack/transfer_text.cpp
  report/charts/charts.cpp
  report/charts/confusion_graph.cpp
  report/charts/expert_map_chart.cpp
  report/charts/line_chart.cpp
  report/charts/prediction_charts.cpp
  report/escape_names.cpp
  report/format.cpp
  report/html.cpp
  report/page.cpp
  report/report.cpp
  report/report_page.cpp
  report/run/accuracy_cells.cpp
  report/run/class_information_text.cpp
  report/run/class_sections.cpp
  report/run/collapse.cpp
  report/run/comparison_text.cpp
  report/run/confused_file.cpp
  report/run/cost_table.cpp
  report/run/expert_map_sections.cpp
  report/run/experts_per_token.cpp
  report/run/explain_folder.cpp
  report/run/overlaid_page.cpp
  report/run/overlaid_runs.cpp
  report/run/read_explanation.cpp
  report/run/run_comparison.cpp
  report/run/run_file.cpp
  report/run/run_metrics.cpp
  report/run/run_summary.cpp
  report/run/superclass_folder.cpp
  report/run/superclass_report.cpp
  report/run/superclass_sections.cpp
  report/run/superclass_text.cpp
  report/run/watch_text.cpp
  report/table.cpp
  report/text_table.cpp)
torch_sources(
  report/run/explain_items.cpp
  report/run/layer_probe_table.cpp)

# The scripts and styles of the report are built into the program: it needs no files beside it and no network.
enable_language(ASM)
file(GLOB _report_assets CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/third_party/vega/*.js
  ${PROJECT_SOURCE_DIR}/sparsight/report/page/*)
target_sources(sparsight PRIVATE report/assets.S)
set_source_files_properties(report/assets.S PROPERTIES
  COMPILE_OPTIONS "-I${PROJECT_SOURCE_DIR}" OBJECT_DEPENDS "${_report_assets}")
