"""Speed, memory and optimum beside other libraries; `python -m benchmarks` runs everything."""
