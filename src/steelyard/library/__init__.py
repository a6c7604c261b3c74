"""What `import steelyard` offers: runs, comparisons, tables and certificates for programs and notebooks."""
