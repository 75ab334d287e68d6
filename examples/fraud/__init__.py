"""The fraud desk. The app is penstock.demo, which `penstock demo` runs; here are its judge and its storm."""
