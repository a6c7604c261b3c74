"""The plots of a page, as plain data for plotly.js."""
