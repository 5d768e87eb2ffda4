package v1

// SecretRef is shared by several APIs, in a directory that looks like an API's.
type SecretRef struct {
	Name string   `json:"name"`
	Keys []string `json:"keys,omitempty"`
}
