"""The methods: losses, updates, the pieces they are composed of, and the catalogue that names them."""
