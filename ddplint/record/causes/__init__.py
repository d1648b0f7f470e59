"""Why a parameter, an output or a term does not arrive at the loss, with the user's line."""
