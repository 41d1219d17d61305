"""Operations that a user declares by an entry formula, and their verification."""
