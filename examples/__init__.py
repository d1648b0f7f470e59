"""Small models that a user would recognise, importable as ``ddplint.examples``; the shipped configs name them."""
