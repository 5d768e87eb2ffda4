// Package pki is in the module of the APIs that import it, outside pkg/apis.
package pki

// Algorithm is the name of an algorithm.
type Algorithm string

// Key has hand-written methods.
type Key struct {
	Algorithm Algorithm `json:"algorithm"`
	Sizes     []int32   `json:"sizes,omitempty"`
}

// DeepCopyInto copies a key.
func (in *Key) DeepCopyInto(out *Key) { *out = Key{in.Algorithm, append([]int32(nil), in.Sizes...)} }

// DeepCopy returns a copy of a key.
func (in *Key) DeepCopy() *Key {
	out := new(Key)
	in.DeepCopyInto(out)
	return out
}
