module example.com/renewal
