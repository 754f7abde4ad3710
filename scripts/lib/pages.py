"""What the HTML pages of the scripts share."""

# The page's own styles apply; nothing of it is executed, and nothing is loaded.
POLICY = ("""<meta http-equiv="Content-Security-Policy" """
          """content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'">""")
