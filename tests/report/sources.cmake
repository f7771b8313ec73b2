light_tests(
  report/browser.cpp
  report/html_test.cpp
  report/report_browser_test.cpp
  report/report_test.cpp
  report/run_metrics_test.cpp
  report/table_test.cpp)
