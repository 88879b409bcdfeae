// SPDX-License-Identifier: Apache-2.0
// Where rooms are compiled with -fsanitize-coverage=trace-pc and nobody listens; the fuzz targets bring a listener of
// their own.
extern "C" void __sanitizer_cov_trace_pc() {}
